"""Natural words and names that values are drawn or composed from. Only lists: how they combine is in compose.py.

Pools are wide rather than deep (names of many cultures, plain and odd words), because a model that copies must have met
every kind of spelling; most values are composed, so that no pool can be learnt by heart.
"""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _lines(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.replace("\n", "/").split("/") if part.strip())


FIRST_NAMES = _words("""
Maria Anna Olivia Emma Ava Sophia Isabella Mia Charlotte Amelia Harper Evelyn Abigail Emily Ella Elizabeth Camila Luna Sofia
Avery Mila Aria Scarlett Penelope Layla Chloe Victoria Madison Eleanor Grace Nora Riley Zoey Hannah Hazel Lily Ellie Violet
Lillian Zoe Stella Aurora Natalie Emilia Everly Leah Aubrey Willow Addison Lucy Audrey Bella Nova Brooklyn Paisley Savannah
Claire Skylar Isla Genesis Naomi Elena Caroline Eliana Liam Noah Oliver Elijah James William Benjamin Lucas Henry Theodore
Jack Levi Alexander Jackson Mateo Daniel Michael Mason Sebastian Ethan Logan Owen Samuel Jacob Asher Aiden John Joseph Wyatt
David Leo Luke Julian Hudson Grayson Matthew Ezra Gabriel Carter Isaac Jayden Luca Anthony Dylan Lincoln Thomas Maverick Elias
Josiah Charles Caleb Peter Paul Mark Kevin Brian Laura Sarah Rachel Rebecca Jessica Karen Susan Linda Barbara Diane Ruth
Aisha Fatima Zainab Khadija Yasmin Leila Noor Amira Salma Hana Omar Ali Hassan Yusuf Ibrahim Khalid Tariq Bilal Karim Samir
Priya Ananya Diya Kavya Meera Lakshmi Sunita Anjali Pooja Rohan Arjun Vikram Rahul Sanjay Amit Rajesh Nikhil Aditya Krishna
Mei Ling Xiu Jing Yan Wei Jun Hao Ming Chen Yuki Sakura Haruto Ren Aoi Hinata Kenji Takeshi Akira Naoko Emi Satoshi
Minjun Seoyeon Jiwoo Hyun Jisoo Linh Thuy Minh Anh Quang Siti Putri Budi Agus Dewi Nurul
Chidi Ngozi Amara Chinonso Emeka Ifeoma Kwame Akosua Kofi Abena Thabo Sipho Naledi Zanele Wanjiru Kamau Achieng Otieno Tendai
Fatou Mamadou Aminata Oumar Selam Dawit Abebe Hiwot
Sofía José María Andrés Lucía Joaquín Inés Álvaro Ramón Beatriz Carmen Javier Pablo Diego Rosa Alejandro Guadalupe Ximena
João Inês Tomás Conceição Thiago Larissa Vinícius Rafaela Giovanni Francesca Matteo Chiara Lorenzo Giulia Alessandro Bianca
Jürgen Günther Käthe Hans Liesel Wolfgang Annika Matthias Ingrid Björn Astrid Søren Freja Lars Signe Åsa Håkan Kjell Sigrid
Aino Eero Väinö Kaisa Juhani Zofia Łukasz Agnieszka Wojciech Kasia Tomasz Jiří Zdeněk Božena Lenka Matej Zuzana Ilona Béla
Zoltán Katalin Ștefan Ioana Răzvan Andrei Dimitri Svetlana Olga Natasha Ivan Yuri Oksana Taras Bohdan Goran Milica Dragan
Jelena Nikos Eleni Yiannis Despina Ayşe Mehmet Elif Emre Zeynep Niamh Siobhán Cillian Aoife Eoin Rhys Carys Gwen Iain Morag
Noa Yael Eitan Avraham Shira Moana Tāne Aroha Keola Leilani Élodie Thérèse Benoît Chloé Gaël Océane Marcel Colette
""")

SURNAMES = _words("""
Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson Anderson Thomas Taylor
Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson Walker Young Allen King Wright Scott
Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Gomez Phillips Evans Turner Diaz
Parker Cruz Edwards Collins Reyes Stewart Morris Morales Murphy Cook Rogers Gutierrez Ortiz Morgan Cooper Peterson Bailey Reed
Kelly Howard Ramos Kim Cox Ward Richardson Watson Brooks Chavez Wood Bennett Gray Mendoza Ruiz Hughes Price Alvarez Castillo
Okafor Adeyemi Okonkwo Mensah Boateng Diallo Traoré Ndiaye Mbeki Nkosi Dlamini Mwangi Odhiambo Haile Tesfaye Oduya Abiola
Patel Sharma Singh Gupta Kumar Reddy Iyer Nair Banerjee Chatterjee Mukherjee Desai Kapoor Malhotra Rao Khan Ahmed Hussain Malik
Li Wang Zhang Liu Chen Yang Huang Zhao Wu Zhou Xu Sun Ma Zhu Guo Tanaka Suzuki Takahashi Watanabe Ito Yamamoto Nakamura
Kobayashi Sato Park Choi Jung Kang Cho Tran Pham Hoang Vu Santoso Wijaya Rahman
Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schäfer Köhler Größmann Dubois Lefèvre Moreau Girard Rousseau
Fontaine Beaumont Rossi Russo Ferrari Esposito Bianchi Romano Colombo Ricci Silva Santos Oliveira Souza Pereira Carvalho Gonçalves
Araújo Fernández Núñez Muñoz Ibáñez Peña Hansen Nielsen Jensen Sørensen Larsen Olsen Johansson Lindqvist Åkesson Virtanen
Korhonen Mäkinen Kowalski Nowak Wiśniewski Zieliński Novák Svoboda Dvořák Horváth Nagy Szabó Kovács Popescu Ionescu Petrov
Ivanova Sokolov Kuznetsov Shevchenko Kovalenko Jovanović Petrović Papadopoulos Nikolaidis Yılmaz Demir Kaya Öztürk
O'Brien O'Connor McCarthy MacLeod Gallagher Fitzgerald Llewellyn Pryce Cohen Levy Mizrahi Haddad Nasser Farah Kahananui
""")

RELATIONS = _lines("""
mom / dad / mum / my sister / my brother / grandma / grandpa / my wife / my husband / my boss / the landlord / the dentist
the plumber / aunt Rosa / uncle Ben / my roommate / the office / the neighbours / my accountant / the vet / the school / my team
""")

CITIES = _lines("""
Paris / London / Berlin / Madrid / Rome / Lisbon / Vienna / Prague / Budapest / Warsaw / Dublin / Oslo / Stockholm / Helsinki
Copenhagen / Amsterdam / Brussels / Zurich / Geneva / Athens / Istanbul / Moscow / Kyiv / Bucharest / Sofia / Belgrade / Zagreb
Ljubljana / Bratislava / Riga / Vilnius / Tallinn / Reykjavik / Edinburgh / Glasgow / Manchester / Liverpool / Leeds / Bristol
Cardiff / Belfast / Cork / Galway / Munich / Hamburg / Cologne / Frankfurt / Stuttgart / Leipzig / Dresden / Düsseldorf / Graz
Salzburg / Basel / Lyon / Marseille / Toulouse / Nice / Bordeaux / Nantes / Strasbourg / Lille / Milan / Naples / Turin / Florence
Venice / Bologna / Palermo / Barcelona / Valencia / Seville / Granada / Bilbao / Málaga / Porto / Faro / Kraków / Gdańsk / Wrocław
Brno / Gothenburg / Malmö / Bergen / Aarhus / Tampere / New York / Los Angeles / Chicago / Houston / Phoenix / Philadelphia
San Antonio / San Diego / Dallas / Austin / San Francisco / Seattle / Denver / Boston / Portland / Las Vegas / Detroit / Memphis
Nashville / Baltimore / Milwaukee / Albuquerque / Tucson / Fresno / Sacramento / Atlanta / Miami / Oakland / Minneapolis / Tulsa
Cleveland / New Orleans / Tampa / Honolulu / Anchorage / Salt Lake City / Toronto / Montreal / Vancouver / Calgary / Ottawa
Edmonton / Winnipeg / Halifax / Mexico City / Guadalajara / Monterrey / Oaxaca / Havana / San Juan / Panama City / Bogotá
Medellín / Quito / Lima / Cusco / La Paz / Santiago / Valparaíso / Buenos Aires / Córdoba / Montevideo / São Paulo
Rio de Janeiro / Salvador / Brasília / Recife / Tokyo / Osaka / Kyoto / Sapporo / Fukuoka / Nagoya / Seoul / Busan / Beijing
Shanghai / Shenzhen / Guangzhou / Chengdu / Hong Kong / Taipei / Hanoi / Ho Chi Minh City / Bangkok / Chiang Mai / Singapore
Kuala Lumpur / Jakarta / Bandung / Manila / Cebu / Mumbai / Delhi / Bangalore / Chennai / Kolkata / Hyderabad / Pune / Jaipur
Kathmandu / Dhaka / Colombo / Karachi / Lahore / Islamabad / Kabul / Tehran / Baghdad / Dubai / Abu Dhabi / Doha / Riyadh
Jeddah / Kuwait City / Beirut / Amman / Damascus / Jerusalem / Tel Aviv / Cairo / Alexandria / Tunis / Algiers / Casablanca
Marrakesh / Dakar / Accra / Lagos / Abuja / Nairobi / Mombasa / Addis Ababa / Kampala / Kigali / Dar es Salaam / Lusaka
Harare / Johannesburg / Cape Town / Durban / Luanda / Sydney / Melbourne / Brisbane / Perth / Adelaide / Hobart / Canberra
Auckland / Wellington / Christchurch / Dunedin / Suva / Tbilisi / Yerevan / Baku / Tashkent / Almaty / Ulaanbaatar / Nuuk
""")

COUNTRIES = _lines("""
Texas / Ohio / France / Spain / Italy / Ireland / Canada / Scotland / Kansas / Maine / Peru / Chile / Japan / India / Norway
Georgia / Virginia / Germany / Turkey / Brazil / Kenya / Vermont / Oregon
""")

NOUNS = _words("""
river garden window mountain shadow candle mirror harbor forest winter summer morning evening thunder feather bridge engine
pocket blanket ladder orchard island meadow lantern compass anchor needle bottle hammer pillow basket curtain kettle carpet
station ticket museum library kitchen balcony cellar attic garage workshop studio office market bakery school hospital
project budget report invoice contract meeting deadline schedule agenda draft proposal survey review launch release sprint
recipe picnic party wedding holiday journey trip flight hike race match tournament concert festival lecture exam lesson
passport licence certificate receipt package parcel letter postcard photo album camera printer laptop keyboard charger
battery bicycle tyre helmet tent backpack suitcase umbrella jacket boots scarf gloves sweater dress shirt shoes
dog cat horse rabbit parrot goldfish hamster turtle rose tulip fern cactus tomato pepper onion garlic potato carrot
butter bread cheese coffee tea sugar flour rice pasta soup salad cake pie cookie chocolate honey lemon apple cherry
moon star planet comet rocket satellite ocean wave storm desert canyon glacier volcano valley cave lighthouse castle tower
piano guitar violin drum trumpet melody rhythm chorus poem novel chapter sonnet theatre painting sculpture canvas
doctor dentist teacher lawyer plumber electrician neighbour landlord client customer colleague manager cousin nephew
insurance mortgage rent tax salary pension savings loan account password backup server router website database archive
""")

ADJECTIVES = _words("""
red blue green golden silver quiet loud bright dark hidden broken lonely happy gentle wild frozen burning distant ancient modern
early late fresh sweet bitter spicy cold warm hot dry wet heavy light soft hard smooth rough sharp round narrow wide deep
shallow long short tall tiny huge little new old young final first second annual monthly weekly daily secret public private
urgent important missing spare local foreign electric digital wooden plastic woollen paper organic frozen roasted whole
northern southern eastern western midnight velvet crystal crimson scarlet amber hollow restless fearless endless silent
""")

FOODS = _lines("""
oat milk / eggs / butter / bread / rice / olive oil / bananas / cherry tomatoes / cheddar / toilet paper / dish soap / batteries
coffee beans / green tea / tofu / chickpeas / lentils / spaghetti / basil / parsley / yoghurt / cream cheese / salmon / chicken
bacon / apples / lemons / oranges / blueberries / spinach / onions / garlic / ginger / peanut butter / honey / flour / sugar
baking powder / sparkling water / orange juice / dog food / cat litter / shampoo / toothpaste / light bulbs / bin bags / sponges
paper towels / birthday candles / wrapping paper / sunscreen / razor blades / printer ink / soy sauce / rice noodles / kimchi
tortillas / black beans / avocado / cilantro / feta / hummus / pita bread / crackers / almonds / walnuts / raisins / granola
frozen peas / ice cream / dark chocolate / maple syrup / vanilla extract / cinnamon / paprika / curry powder / coconut milk
""")

LISTS = _lines("""
shopping / groceries / grocery / packing / to-do / chores / wish / reading / birthday / hardware store / camping / errands / work
weekend / party / school / gift / pharmacy / holiday / books / movies / garden / household / project / bucket / guest / wedding
""")

LABELS = _lines("""
pasta / tea / eggs / laundry / deep work / workout / pizza / nap / meditation / stretching / bread / homework / gym / yoga / rice
morning run / school run / medication / vitamins / standup / lunch break / coffee / piano practice / wake up / church / oven
plank / focus / reading / dishwasher / parking / cookies / study / chores / road trip / dinner party / chill / rainy day / oldies
""")

EVENTS = _lines("""
dentist appointment / Team sync / project kickoff / doctor's appointment / yoga class / parent-teacher conference / haircut
Board meeting / budget review / book club / job interview / piano lesson / wedding anniversary / housewarming party / car service
Quarterly planning / one-on-one / company picnic / school play / flight home / movie night / date night / design critique
vet visit / eye exam / swim practice / Sprint retro / town hall / blood test / garage sale / choir rehearsal / staff training
""")

SONGS = _lines("""
Bohemian Rhapsody / Yesterday / Hey Jude / Imagine / Billie Jean / Purple Rain / Hotel California / Wonderwall / Smells Like Teen Spirit
Rolling in the Deep / Someone Like You / Blinding Lights / Shape of You / Dancing Queen / Mamma Mia / Clair de Lune / Despacito
La Vie en rose / Africa / Take On Me / Let It Be / Heroes / Dreams / Landslide / Jolene / Ring of Fire / Hurt / Creep / Karma Police
Clocks / Yellow / Fix You / Halo / Crazy in Love / Umbrella / Royals / Bad Guy / Levitating / Shake It Off / Blank Space / Redbone
Superstition / Respect / Lean on Me / Stand by Me / Moon River / Fly Me to the Moon / Feeling Good / Sinnerman / Space Oddity
Here Comes the Sun / Come Together / Paint It Black / Gimme Shelter / Whole Lotta Love / Kashmir / Back in Black / Enter Sandman
""")

ARTISTS = _lines("""
Queen / The Beatles / Adele / Michael Jackson / Prince / Nirvana / Oasis / ABBA / Radiohead / Coldplay / Beyoncé / Rihanna / Lorde
Billie Eilish / Dua Lipa / Taylor Swift / Stevie Wonder / Aretha Franklin / Nina Simone / David Bowie / Led Zeppelin / Metallica
AC-DC / Pink Floyd / Fleetwood Mac / Dolly Parton / Johnny Cash / Daft Punk / Björk / Sigur Rós / Rosalía / Bad Bunny / Shakira
Edith Piaf / Stromae / Fela Kuti / Burna Boy / Miriam Makeba / Ravi Shankar / Miles Davis / John Coltrane / Ella Fitzgerald / Bach
Mozart / Chopin / Debussy / Philip Glass / Hans Zimmer / BTS / Blackpink / Utada Hikaru / Caetano Veloso / Mercedes Sosa / Juanes
""")

SHOWS = _lines("""
Radiolab / Serial / This American Life / The Daily / Planet Money / Hardcore History / Freakonomics Radio / Science Vs / Reply All
Stuff You Should Know / Song Exploder / Invisibilia / Hidden Brain / The Moth / Criminal / Welcome to Night Vale / More or Less
In Our Time / The Rest Is History / Desert Island Discs / 99 Percent Invisible / Short Wave / Up First / Business Wars
""")

APPS = _lines("""
Spotify / Calculator / Calendar / Mail / Maps / Photos / Camera / Notes / Safari / Chrome / Firefox / Slack / Zoom / Teams / Discord
WhatsApp / Signal / Telegram / Instagram / YouTube / Netflix / Terminal / Finder / Word / Excel / PowerPoint / Outlook / OneNote
Photoshop / Illustrator / Figma / Sketch / Blender / GarageBand / Logic Pro / Final Cut / Xcode / Visual Studio Code / PyCharm
Steam / Minecraft / Duolingo / Kindle / Audible / Strava / Uber / Airbnb / Notion / Trello / Asana / Jira / GitHub / Dropbox
Google Drive / Google Maps / Waze / Shazam / Twitch / Reddit / LinkedIn / PayPal / Revolut / Wallet / Health / Weather / Clock
System Settings / Activity Monitor / Task Manager / Paint / Notepad / VLC / Thunderbird / LibreOffice / GIMP / Inkscape / Obsidian
""")

FOLDERS = _lines("""
Documents / Downloads / Desktop / Pictures / Music / Invoices / Receipts / Projects / Archive / Backup / Work / Personal / Taxes
Holiday Photos / School / Contracts / Presentations / Reports / Drafts / Screenshots / Recipes / Client Files / Meeting Notes
""")

EXTENSIONS = _words(
    "pdf docx xlsx txt md csv pptx jpg png mp3 mp4 zip json py html key pages odt svg gif wav mov tar.gz heic epub log"
)

PLACES = _lines("""
the airport / the train station / home / work / the office / Central Park / the hospital / the beach / the library / the stadium
the nearest pharmacy / the city centre / the main square / the museum / the zoo / the bus stop / the harbour / the town hall
the university / the botanical garden / the supermarket / Times Square / the Eiffel Tower / the Louvre / Heathrow / Union Station
the post office / the gas station / the mall / school / the gym / the dentist / the ferry terminal / the old mill / Grand Central
""")

STREET_KINDS = _lines("Street / Avenue / Road / Lane / Square / Boulevard / Drive / Court / Way / Terrace")

PLACE_KINDS = _lines(
    "Airport / Station / Park / Museum / Library / Hospital / Market / Theatre / Cathedral / University / Harbour / Stadium"
)

PLACE_CATEGORIES = _lines("""
coffee shop / restaurant / pharmacy / gas station / hotel / bookstore / bakery / supermarket / gym / bank / ATM / park / museum
hospital / dentist / hairdresser / vegan restaurant / sushi bar / pizzeria / ice cream parlour / hardware store / pet shop
laundromat / library / cinema / theatre / nightclub / wine bar / brewery / tea house / bike shop / car wash / post office
florist / nail salon / playground / swimming pool / climbing gym / record store / thrift shop / art gallery / ramen place
coworking space / parking garage / charging station / vet / optician / tailor / butcher / fish market / deli / youth hostel
""")

LANGUAGES = _words("""
French Spanish German Italian Portuguese Dutch Swedish Norwegian Danish Finnish Polish Czech Hungarian Romanian Greek Turkish
Russian Ukrainian Arabic Hebrew Persian Hindi Urdu Bengali Tamil Telugu Japanese Korean Chinese Mandarin Cantonese Vietnamese
Thai Indonesian Malay Tagalog Swahili Zulu Yoruba Amharic Icelandic Irish Welsh Catalan Basque Latin English Croatian Serbian
Bulgarian Slovak Estonian Latvian Lithuanian Nepali Mongolian Georgian Armenian Hawaiian Maori Esperanto
""")

CURRENCIES = {  # spelled in a request -> code in the call; the code itself is a spelling too
    "US dollars": "USD",
    "dollars": "USD",
    "euros": "EUR",
    "British pounds": "GBP",
    "pounds": "GBP",
    "yen": "JPY",
    "Japanese yen": "JPY",
    "Swiss francs": "CHF",
    "Canadian dollars": "CAD",
    "Australian dollars": "AUD",
    "Chinese yuan": "CNY",
    "yuan": "CNY",
    "Indian rupees": "INR",
    "rupees": "INR",
    "Mexican pesos": "MXN",
    "Brazilian reais": "BRL",
    "reais": "BRL",
    "Korean won": "KRW",
    "won": "KRW",
    "Swedish kronor": "SEK",
    "Norwegian kroner": "NOK",
    "Danish kroner": "DKK",
    "Polish zlotys": "PLN",
    "zlotys": "PLN",
    "Czech korunas": "CZK",
    "Turkish lira": "TRY",
    "lira": "TRY",
    "South African rand": "ZAR",
    "rand": "ZAR",
    "Thai baht": "THB",
    "baht": "THB",
    "New Zealand dollars": "NZD",
}

ROOMS = _lines("""
living room / kitchen / bedroom / bathroom / hallway / office / garage / basement / attic / dining room / nursery / guest room
study / balcony / porch / laundry room / kids' room / patio / garden / entrance / upstairs hallway / master bedroom / studio
conservatory / pantry / workshop / library / den / playroom / cellar / terrace / stairwell / closet / sunroom / hall
""")

WEEKDAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")

MONTHS = _words("January February March April May June July August September October November December")

PHRASES = _lines("""
good morning / thank you very much / where is the train station / how much does this cost / I am hungry / see you tomorrow
the bill please / I don't understand / can you help me / happy birthday / good luck / I love you / what time is it / nice to meet you
I am allergic to nuts / one coffee with milk / have a safe trip / my name is Anna / where are you from / I need a doctor
the food was delicious / two tickets to the museum / is this seat free / congratulations / welcome / I would like to pay
turn left at the corner / how far is it / I am lost / what do you recommend / good night / cheers / I miss you / no problem
""")

DEFINED_WORDS = _words("""
serendipity ephemeral ubiquitous gregarious laconic quixotic mellifluous petrichor obfuscate perspicacious sonder zeitgeist
photosynthesis entropy osmosis recursion paradox metaphor irony hubris nostalgia melancholy altruism empathy stoic candid
benevolent frugal austere lucid tenacious arcane esoteric nebulous pragmatic resilient verbose whimsical zealous sycophant
""")

TASK_VERBS = _words("""
buy clean fix wash water feed call book cancel renew return pack order check update print sign send collect finish review
prepare organise repair paint replace sell measure photograph test upload download install charge pay file scan translate
write read practise rehearse vacuum mow sharpen iron fold sort empty refill label bring borrow lend move wrap frame donate
""")

TASKS = _lines("""
water the plants / renew the passport / take out the trash / pay the electricity bill / call mom / walk the dog / buy milk
feed the cat / charge the laptop / take my medicine / book a haircut / pick up the kids / check the oven / return the library books
defrost the chicken / submit the report / change the bed sheets / send the invoice / clean the fridge / lock the back door
""")

MESSAGE_STARTS = _lines("""
I'm running late / I'll be there soon / see you / the meeting moved / can we talk / are you free / don't forget the keys
happy birthday / thanks for dinner / I'm on my way / the package arrived / we're out of milk / call me back / dinner is ready
the train is delayed / I got the job / good luck / let's meet / I can't make it / please bring the charger / I left my bag
the kids are asleep / we won / I'm at the gate / your keys are here / the door code changed / my phone is dying
""")

MESSAGE_TAILS = _lines("""
by ten minutes / tonight / tomorrow / after lunch / at the station / in front of the school / before the show / this weekend
next to the bakery / with Anna / on the kitchen table / near the park / when you get home / so start without me / sorry about that
as soon as possible / at the usual place / and bring snacks / if it doesn't rain / until Friday
""")

TOPIC_FORMS = _lines("""
history of {n} / {a} {n} / how to repair a {n} / best {n} for beginners / {n} and {n} / {a} {n} reviews / {n} prices / why {n} matters
{n} near me / origin of the {n} / {a} {n} ideas / {city} {n} / {n} in {city} / cheap {n} / difference between {n} and {n} / {person}
how to {v} a {n} / {n} maintenance / {n} recipes / the {a} {n} / {n} tips / what is a {n} / {n} statistics / life of {person}
""")

SUBJECT_FORMS = _lines("""
{n} / {n} update / {a} {n} / {n} for {city} / Question about the {n} / {n} and {n} / Your {n} / the {a} {n} / {n} request
Re {n} / next week's {n} / {n} confirmation / Thanks for the {n} / {n} feedback / our {n} / Invoice {number} / missing {n}
""")

SONG_FORMS = _lines("""
{A} {N} / {N} of {N} / The {N} / {A} {N}s / {N} in {City} / {City} {N} / My {A} {N} / {N} Song / {V} the {N} / {First} / {N} Blues
Dear {First} / {A} and {A} / {N} No. {small} / The {A} {N}
""")

ARTIST_FORMS = _lines(
    "The {N}s / The {A} {N}s / {A} {N} / DJ {First} / {First} {Last} / {First} and the {N}s / {N} & {N} / {Last} Quartet / {N}"
)

SHOW_FORMS = _lines("""
The {N} Show / {N} Weekly / The {N} Hour / {A} {N} / {N} and {N} / {N} Talk / {N} Stories / The {A} {N} / {First}'s {N} / Inside {City}
Notes on {N} / {N} FM / {City} Diaries / {N} Lab
""")

DELIMITERS = frozenset(_words("""
a an the to for at in on of from with by named called titled saying says say that and or as into onto about around after before
please thanks thank under over via using please it its is my me i you your this these those off out up down then
today tomorrow tonight yesterday next week weeks weekend month day days am pm noon midnight may
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
november december minute minutes hour hours percent degrees timer alarm
"""))
"""Words by which wordings mark where a value begins or ends, and words of dates; random word sequences avoid them."""
